package expr

import (
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokWord             // identifier or keyword
	tokName             // #placeholder
	tokValue            // :placeholder
	tokNumber           // list index
	tokSymbol           // punctuation and comparators
	tokBad              // a character that no token begins with
)

// token is a piece of an expression, src[from:to].
type token struct {
	kind     tokenKind
	text     string
	from, to int
}

// is reports whether the token is a keyword, in any case.
func (t token) is(keyword string) bool {
	return t.kind == tokWord && strings.EqualFold(t.text, keyword)
}

// sym reports whether the token is a symbol.
func (t token) sym(s string) bool { return t.kind == tokSymbol && t.text == s }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// isWord reports whether a byte may occur in a name. A name without # or : begins with a letter.
func isWord(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }

// lex returns the tokens of an expression, with tokEOF at the end.
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

// lexOne sets the kind of the token that begins at i and returns its end.
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

// MaxLength is the length of the longest expression, in bytes.
const MaxLength = 4096

// parser parses one expression. Its errors lack the "Invalid XExpression: " in front, which
// Env.parse adds. A syntax error is a panic with a *wire.Error, which Env.parse recovers.
type parser struct {
	src   string
	toks  []token
	at    int // index of the current token
	env   *Env
	depth int // of the recursion
	ops   int // operators and functions so far
	violations
}

// peek returns the current token.
func (p *parser) peek() token { return p.toks[p.at] }

// ahead returns the nth token after the current one.
func (p *parser) ahead(n int) token {
	if p.at+n < len(p.toks) {
		return p.toks[p.at+n]
	}
	return p.toks[len(p.toks)-1]
}

// take skips a symbol if it is the current token, and reports whether it was.
func (p *parser) take(sym string) bool {
	if p.peek().sym(sym) {
		p.at++
		return true
	}
	return false
}

// want skips a symbol, which must be the current token.
func (p *parser) want(sym string) {
	if !p.take(sym) {
		p.unexpected()
	}
}

// unexpected ends the parse with a syntax error at the current token.
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

// MaxOperators is the most operators and functions of an expression.
const MaxOperators = 300

// operator counts an operator or a function.
func (p *parser) operator() {
	if p.ops++; p.ops > MaxOperators {
		p.violation(badFunction, "The expression contains too many operators; operator count: "+strconv.Itoa(p.ops))
	}
}

// violations has the first message of each kind of violation. Syntax errors are not among them.
type violations map[violationKind]string

// violationKind is what is wrong with an expression. Each grammar has an order in which it reports
// the kinds.
type violationKind uint8

const (
	badParens violationKind = iota
	badReserved
	badFunction
	badMisuse
	badSection
	badCondition // the first condition with a violation of the kinds below
	badName
	badValue
	badOverlap
	badConflict
	badOperand
	badCount
	badDistinct
	badArgument
)

// violation records a violation, unless there is one of its kind.
func (p *parser) violation(kind violationKind, message string) {
	if _, had := p.violations[kind]; !had {
		p.violations[kind] = message
	}
}

// first returns the violation of the first kind in an order that has one.
func (p *parser) first(order ...violationKind) *wire.Error {
	for _, kind := range order {
		if m, ok := p.violations[kind]; ok {
			return wire.Invalid("%s", m)
		}
	}
	return nil
}
