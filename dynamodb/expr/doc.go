// Package expr is DynamoDB's expression language: update, condition, filter, key condition and
// projection expressions. One lexer and one parser read them; they are checked in the service's
// order with the service's messages, and evaluated on items. The legacy parameters become the same
// parsed forms.
//
// An expression may be wrong in several ways, and the service reports one of them. The parser
// therefore records violations by kind, and each grammar names the order in which the kinds are
// reported. A syntax error ends the parse at once.
//
// Files, from the top down:
//
//	legacy.go       Expected, filters and AttributeUpdates as conditions and updates
//	legacytests.go  the tests of legacy conditions, read and checked
//	keycond.go      key condition expressions
//	update.go       update expressions: parse and apply
//	parse.go        condition and projection expressions; operands and calls
//	check.go        checks of operands and functions
//	eval.go         nodes, and the evaluation of conditions
//	path.go         document paths and projections
//	env.go          placeholders of one request
//	lex.go          tokens, the parser's state, violations
//	reserved.go     reserved words
package expr
