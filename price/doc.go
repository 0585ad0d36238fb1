// Package price computes what a pipeline costs from counts, rates and sizes, with list prices and limits of both
// clouds that are built in. It is pure: nothing is requested.
//
//	polls := price.MonthlyPolls(time.Second)       // 2,628,000 for each idle shard
//	dollars := price.StreamReadDollars(44 * polls) // 23.13
//
// A month has 730 hours. The clouds fill in the prices of their pages in the browser, so that most of them are
// confirmed by no dated page: List names those that are. Other regions cost up to about twice as much.
//
// Files, from the top down:
//
//	storage.go  the kinds of storage of Bigtable: nodes, dollars, and a whole comparison
//	month.go    what reads, requests and transfer cost
//	list.go     the prices, each with its source
package price
