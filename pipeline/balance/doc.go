// Package balance divides the tables among the processes of a pipeline. A member with little work
// requests a log from the member with most; a member that does not reach a service lets others
// request its logs; a member that ends hands its logs over.
//
// The decisions are pure functions of what the members announce (package presence). They are hints:
// members may have different views of each other for a moment, and the log's claim alone decides
// which process owns it.
package balance
