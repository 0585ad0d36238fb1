// Package shadow shows how an application reads DynamoDB, and how rows in Bigtable would serve it:
// `replicator shadow`.
//
//	report, err := shadow.Run(ctx, input, shadow.Options{Listen: "127.0.0.1:8001", Share: 1})
//	err = report.WriteText(os.Stdout, "")
//
//	engine := shadow.NewEngine(input.Reader, "engine.json")
//	err := engine.Run(ctx, os.Stdin) // in the child process: exchanges in, counts into the file
//
// Package front stands between the application and DynamoDB and copies bytes; package child gives a
// share of the exchanges to the engine, a process of its own; package pattern counts them by their
// form, without keys and values; package replay makes the reads in Bigtable too, and compares.
//
// Files, from the top down:
//
//	run.go         one run: the front, its engine, the report, the page
//	reach.go       by which names and addresses clients reach the front, and it DynamoDB
//	input.go       the tables of a configuration, and both sides of them
//	text.go        the report for a terminal
//	page.go        the report as a page
//	report.go      what was seen, with the grade of each read: sentence, JSON
//	words.go       its reasons and kinds in words
//	metrics.go     the report as metrics
//	mismatches.go  the file that names mismatches
//	engine.go      counts the exchanges of a pipe into a file, and has reads replayed
package shadow
