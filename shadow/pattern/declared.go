package pattern

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/dynamodb/expr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/transform/access"
)

// declared is the read of DynamoDB that an entry of `reads` answers.
type declared struct {
	get   bool
	index string
	tests []access.Test // with the values that the entry has; none where it has a placeholder
}

// parseOf parses `of`: an operation, the name of an index, and a key condition.
//
//	GetItem
//	Query pk = :u and begins_with(sk, 'ORDER#')
//	Query by_state state = ? and created between ? and ?
//
// The condition is one of DynamoDB, in which values may stand as 'text' or numbers, and in which no
// attribute needs a placeholder: a name that is no word stands in double quotes. ok is false for
// all other texts, which are for people only.
func parseOf(of string) (d declared, ok bool) {
	operation, rest, _ := strings.Cut(strings.TrimSpace(of), " ")
	rest = strings.TrimSpace(rest)
	switch operation {
	case "GetItem", "BatchGetItem", "TransactGetItems":
		d.get = true
		if rest == "" {
			return d, true
		}
	case "Query":
	default:
		return d, false
	}
	w := ofWords{text: rest}
	if !w.read() {
		return d, false
	}
	d.index = w.index
	tests, ok := w.tests()
	d.tests = tests
	return d, ok && (!d.get || d.index == "")
}

// is reports whether a pattern is what the entry declares: the same operation, index and key
// condition, and no rule that the entry leaves out.
func (d *declared) is(t *Table, p *Pattern) bool {
	if d.get != (p.Operation != "Query") || d.index != p.Index {
		return false
	}
	if d.get && d.tests == nil {
		return true
	}
	if len(d.tests) != len(p.Key) {
		return false
	}
	for _, k := range p.Key {
		same := func(x access.Test) bool { return x.Attr == k.Attr && x.Op == k.Op }
		if !slices.ContainsFunc(d.tests, same) {
			return false
		}
	}
	rules := t.Program.RulesOf(d.tests)
	for i := range p.Rules {
		if !slices.ContainsFunc(rules, func(b access.Bound) bool { return b.Rule == p.Rules[i].Rule }) {
			return false
		}
	}
	return true
}

// open is the value of a placeholder, which no entry has.
const open = "\x00"

// ofWords rewrites a condition so that DynamoDB's parser takes it: names and values become
// placeholders.
type ofWords struct {
	text   string
	index  string
	out    strings.Builder
	words  int
	names  map[string]string
	values map[string]map[string]string
}

// read reads the whole text; ok is false if it has something that no condition has.
func (w *ofWords) read() (ok bool) {
	w.names, w.values = map[string]string{}, map[string]map[string]string{}
	for rest := w.text; rest != ""; {
		c := rest[0]
		var n int
		switch {
		case c == ' ':
			n = 1
		case c == '\'' || c == '"':
			end := strings.IndexByte(rest[1:], c)
			if end < 0 {
				return false
			}
			if n = end + 2; c == '"' {
				w.name(rest[1 : n-1])
			} else {
				w.value("S", rest[1:n-1])
			}
		case c == ':':
			n = 1 + wordLength(rest[1:])
			w.value("S", open)
		case c == '?':
			n = 1
			w.value("S", open)
		case c >= '0' && c <= '9':
			n = len(rest) - len(strings.TrimLeft(rest, "0123456789."))
			w.value("N", rest[:n])
		case strings.IndexByte("=<>(),", c) >= 0:
			n = 1
			w.out.WriteByte(c)
		default:
			if n = wordLength(rest); n == 0 {
				return false
			}
			w.word(rest[:n], rest[n:])
		}
		rest = rest[n:]
	}
	return w.out.Len() > 0
}

// wordLength returns how much of a text is a word. Names of indexes may have - and . too.
func wordLength(s string) int {
	return len(s) - len(strings.TrimLeft(s, nameRunes))
}

// word writes a word: a keyword, the index, which is a first word with another behind it, or the
// name of an attribute.
func (w *ofWords) word(word, behind string) {
	w.words++
	next := strings.TrimSpace(behind)
	switch strings.ToLower(word) {
	case "and", "between", "begins_with":
		w.out.WriteString(" " + strings.ToLower(word) + " ")
		return
	}
	tested := next == "" || strings.IndexByte("=<>", next[0]) >= 0 || strings.HasPrefix(strings.ToLower(next), "between ")
	if w.words == 1 && !tested {
		w.index = word
		return
	}
	w.name(word)
}

// name writes an attribute's name.
func (w *ofWords) name(name string) {
	placeholder := "#n" + strconv.Itoa(len(w.names))
	w.names[placeholder] = name
	w.out.WriteString(" " + placeholder + " ")
}

// value writes a value.
func (w *ofWords) value(kind, text string) {
	placeholder := ":v" + strconv.Itoa(len(w.values))
	w.values[placeholder] = map[string]string{kind: text}
	w.out.WriteString(" " + placeholder + " ")
}

// tests returns the tests of the condition.
func (w *ofWords) tests() ([]access.Test, bool) {
	body, err := json.Marshal(map[string]any{"names": w.names, "values": w.values})
	if err != nil {
		return nil, false
	}
	n, err := wire.Parse(string(body))
	if err != nil {
		return nil, false
	}
	env, bad := expr.NewEnv(n.Get("names"), n.Get("values"))
	if bad != nil {
		return nil, false
	}
	keys, bad := env.KeyCondition(w.out.String())
	if bad != nil {
		return nil, false
	}
	tests, reason := testsOf(keys)
	for i := range tests {
		if slices.ContainsFunc(tests[i].Values, func(v change.Value) bool { return v.S == open }) {
			tests[i].Values = nil
		}
	}
	return tests, reason == ""
}
