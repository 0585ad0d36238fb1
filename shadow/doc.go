// Package shadow shows how an application reads DynamoDB, and how rows in Bigtable would serve it:
// `replicator shadow`.
//
//	engine := shadow.NewEngine(pattern.NewReader(tables...), "engine.json")
//	err := engine.Run(ctx, os.Stdin) // in the child process: exchanges in, counts into the file
//	report := shadow.NewReport(reader, counts, passed)
//	fmt.Println(report.Sentence())
//
// Package front stands between the application and DynamoDB and copies bytes; package child gives a
// share of the exchanges to the engine, a process of its own; package pattern counts them by their
// form, without keys and values; package replay makes the reads in Bigtable too, and compares.
//
// Files, from the top down:
//
//	report.go  what was seen, with the grade of each read: sentence, JSON
//	words.go   its reasons and kinds in words
//	page.go    the report as a page
//	metrics.go the report as metrics
//	engine.go  counts the exchanges of a pipe into a file
package shadow
