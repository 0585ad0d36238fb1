package propose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
)

// rules are the proposed ones: one for all items, or one per kind and one for what is of none.
//
// No row can be another rule's: rows of kinds begin with their words, or have them behind the first part, and rows of
// the rest begin with a word that no kind has, or have an empty part there.
func (s *Sampler) rules() (out []proposed) {
	kinds, prefixed := s.kinds()
	pk, rest := s.src.Schema.Partition, proposed{name: "item", keys: quoteName(s.src.Schema.Partition.Name)}
	captures := s.names()
	p, joint := captures.of("pk"), "#"
	rest.match, rest.row = fmt.Sprintf("%s: \"{%s}\"", quoteName(pk.Name), p), ref(pk, p)
	if len(s.src.Indexes) > 0 && !prefixed {
		rest.lead = s.lead("item", "")
	}
	switch {
	case prefixed:
		rest.name, rest.row = "rest", s.lead("rest", "")+rest.row
	case len(kinds) > 0:
		rest.name, joint = "rest", "##"
	}
	if sk := s.src.Schema.Sort; sk != nil {
		c := captures.of("sk")
		rest.match += fmt.Sprintf(", %s: \"{%s}\"", quoteName(sk.Name), c)
		rest.row += joint + ref(*sk, c)
		rest.keys += ", " + quoteName(sk.Name)
	}
	if len(kinds) == 0 {
		return []proposed{rest}
	}
	rest.says = "What is of no kind above; without this rule it would be refused, with drop: true left out."
	named := &names{taken: map[string]bool{"rest": true}}
	for _, k := range kinds {
		out = append(out, s.ruleOf(k, rest.lead, rest.keys, named))
	}
	out[0].says = "Keys begin with words: a rule for each kind of items. A partition key's items stand together, as in " +
		"DynamoDB."
	return append(out, rest)
}

// lead is a word in front of rows, of one index or of items, which no partition key and no other index begins with.
func (s *Sampler) lead(word, index string) string {
	for {
		taken := slices.ContainsFunc(s.src.Indexes, func(x Index) bool { return x.Name == word && x.Name != index })
		for p := range s.pairs {
			taken = taken || p.pk.word == word
		}
		if !taken {
			return word + "#"
		}
		word += "-"
	}
}

// ruleOf writes the rule of a kind.
func (s *Sampler) ruleOf(k kind, lead, keys string, named *names) proposed {
	captures := s.names()
	pk, sk := s.src.Schema.Partition, s.src.Schema.Sort
	pattern, row, words := k.pk.parts(pk, "pk", captures)
	r := proposed{lead: lead, keys: keys, indexed: k.indexed,
		match: fmt.Sprintf("%s: \"%s\"", quoteName(pk.Name), pattern), row: row}
	if sk != nil {
		pattern, row, more := k.sk.parts(*sk, "sk", captures)
		r.match += fmt.Sprintf(", %s: \"%s\"", quoteName(sk.Name), pattern)
		r.row += "#" + row
		words = append(words, more...)
	}
	r.name = named.of(strings.Join(words, "_"))
	return r
}

// parts are the pattern of a key and its part of the row, and the words in them.
func (f form) parts(of change.KeyAttr, free string, captures *names) (pattern, row string, words []string) {
	switch {
	case f.word == "":
		c := captures.of(free)
		return "{" + c + "}", ref(of, c), nil
	case f.alone:
		return f.word, f.word, []string{f.word}
	}
	text := f.word + "#{" + captures.of(f.word) + "}"
	return text, text, []string{f.word}
}

// ref puts a key attribute into a row key: what is captured, or named.
func ref(k change.KeyAttr, name string) string {
	switch k.Type {
	case 'B':
		return "{" + name + "|hex}"
	case 'N':
		return "{" + name + "|ordnum}"
	}
	return "{" + name + "}"
}

// quoteName quotes an attribute's name for YAML where it needs it.
func quoteName(name string) string {
	plain := strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
	if name != "" && plain == "" && !strings.ContainsAny(name[:1], "0123456789") &&
		!slices.Contains([]string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}, strings.ToLower(name)) {
		return name
	}
	return fmt.Sprintf("%q", name)
}
