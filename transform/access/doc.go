// Package access judges how rows answer a read of DynamoDB: which rules take the items that its key
// condition can match, and which row, prefix or range holds them.
//
//	q := access.Query{Key: keys, Tests: tests}   // pk = USER#ann and begins_with(sk, ORDER#)
//	q.Rules = access.Rules(program, q.Tests)     // rule order: {user} is one value, {id} is free
//	verdict := access.Judge(program, q)          // served, prefix u#{user}#o#
//
// Rules alone looks at values, and its result has none of them: a capture of a rule is one value,
// begins with one, is within a range, or is free. Judge reads only that, so a verdict holds for all
// requests of one form. It joins the row template of each rule up to the first part that the read
// does not fix, and answers three: does every item of the read have a row there (complete), has the
// range other rows too (wider), and do the rows come in the order of the items (order). An index
// row that would serve a read without one is proposed only if the mapping compiles with it.
//
// What depends on data (a value with a character below the delimiter) does not change the grade:
// the reason names it.
//
// Files, from the top down:
//
//	judge.go   the verdict on a read: the best of the rows that may answer it
//	locate.go  where the rows of one request are
//	propose.go the index row that would serve a read
//	order.go   whether rows come in the order of the items
//	wider.go   what else a range holds
//	whole.go   whether every item of a read has a row
//	span.go    the rows of a read: how much of their keys it fixes
//	rules.go   the rules that a key condition can match, and what it shows of their captures
//	query.go   reads, grades and verdicts
package access
