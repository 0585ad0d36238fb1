// Package expr is DynamoDB's expression language: update, condition, filter, key
// condition and projection expressions, parsed by one lexer and one parser, checked in
// the service's order with the service's messages, and evaluated on items.
package expr

import (
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokWord             // identifier or keyword
	tokName             // #placeholder
	tokValue            // :placeholder
	tokNumber           // list index
	tokSymbol           // punctuation and comparators
	tokBad
)

type token struct {
	kind     tokenKind
	text     string
	from, to int
}

// is reports a keyword, which the service reads without regard to case.
func (t token) is(keyword string) bool {
	return t.kind == tokWord && strings.EqualFold(t.text, keyword)
}

func (t token) sym(s string) bool { return t.kind == tokSymbol && t.text == s }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// isWord reports whether a byte may stand in a name. The first byte of a name without # or : is a letter.
func isWord(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }

func lex(s string) []token {
	toks := make([]token, 0, len(s)/3+2)
	for i := 0; i < len(s); {
		c := s[i]
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			i++
			continue
		}
		t := token{from: i}
		i = lexOne(s, i, &t)
		t.to, t.text = i, s[t.from:i]
		toks = append(toks, t)
	}
	return append(toks, token{kind: tokEOF, text: "<EOF>", from: len(s), to: len(s)})
}

func lexOne(s string, i int, t *token) int {
	c := s[i]
	i++
	word := func() {
		for i < len(s) && isWord(s[i]) {
			i++
		}
	}
	switch {
	case isLetter(c):
		t.kind = tokWord
		word()
	case c == '#' || c == ':':
		t.kind = tokName
		if c == ':' {
			t.kind = tokValue
		}
		from := i
		word()
		if i == from {
			t.kind = tokBad
		}
	case isDigit(c):
		t.kind = tokNumber
		for i < len(s) && isDigit(s[i]) {
			i++
		}
	case strings.IndexByte("()[],.=+-<>", c) >= 0:
		t.kind = tokSymbol
		if i < len(s) && (c == '<' && (s[i] == '>' || s[i] == '=') || c == '>' && s[i] == '=') {
			i++
		}
	default:
		t.kind = tokBad
	}
	return i
}

// MaxLength is how long an expression may be, in bytes.
const MaxLength = 4096

// parser walks the tokens of one expression. Its errors are wire errors whose message
// lacks the "Invalid XExpression: " in front.
type parser struct {
	src   string
	toks  []token
	at    int
	env   *Env
	depth int
	ops   int // operators and functions seen
	faults
}

func (p *parser) peek() token { return p.toks[p.at] }

func (p *parser) ahead(n int) token {
	if p.at+n < len(p.toks) {
		return p.toks[p.at+n]
	}
	return p.toks[len(p.toks)-1]
}

// take goes past a symbol if it is the next token.
func (p *parser) take(sym string) bool {
	if p.peek().sym(sym) {
		p.at++
		return true
	}
	return false
}

func (p *parser) want(sym string) {
	if !p.take(sym) {
		p.unexpected()
	}
}

// unexpected ends the parse at the current token, shown with its neighbours.
func (p *parser) unexpected() {
	t := p.peek()
	from, to := t.from, t.to
	if p.at > 0 {
		from = p.toks[p.at-1].from
	}
	if p.at+1 < len(p.toks) {
		to = p.toks[p.at+1].to
	}
	panic(wire.Invalid(`Syntax error; token: "%s", near: "%s"`, t.text, p.src[from:to]))
}

// MaxOperators is how many operators and functions an expression may have.
const MaxOperators = 300

// operator counts one.
func (p *parser) operator() {
	if p.ops++; p.ops > MaxOperators {
		p.fault(faultFunction, "The expression contains too many operators; operator count: "+strconv.Itoa(p.ops))
	}
}

// faults are what is wrong with the meaning of an expression, by kind: the service
// reports the kinds in an order of its own, and of one kind the first.
type faults map[fault]string

type fault uint8

const (
	faultParens fault = iota
	faultReserved
	faultFunction
	faultMisuse
	faultSection
	faultCondition // first condition with a fault of the kinds below
	faultName
	faultValue
	faultOverlap
	faultConflict
	faultOperand
	faultCount
	faultDistinct
	faultArgument
)

func (p *parser) fault(kind fault, message string) {
	if _, had := p.faults[kind]; !had {
		p.faults[kind] = message
	}
}

func (p *parser) first(order ...fault) *wire.Error {
	for _, kind := range order {
		if m, ok := p.faults[kind]; ok {
			return wire.Invalid("%s", m)
		}
	}
	return nil
}

// parse runs one grammar over an expression; what it reports names the parameter.
func (e *Env) parse(param, src string, grammar func(p *parser) *wire.Error) (err *wire.Error) {
	fail := func(err *wire.Error) *wire.Error {
		return wire.Invalid("%s", "Invalid "+param+": "+err.Message)
	}
	if strings.TrimSpace(src) == "" {
		return fail(wire.Invalid("The expression can not be empty;"))
	}
	if len(src) > MaxLength {
		return fail(wire.Invalid("Expression size has exceeded the maximum allowed size; expression size: %d", len(src)))
	}
	defer func() {
		if r := recover(); r != nil {
			bad, ok := r.(*wire.Error)
			if !ok {
				panic(r)
			}
			err = fail(bad)
		}
	}()
	p := &parser{src: src, toks: lex(src), env: e, faults: faults{}}
	bad := grammar(p)
	if bad != nil {
		return fail(bad)
	}
	return nil
}
