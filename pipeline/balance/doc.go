// Package balance divides the tables among the processes of a pipeline. A member with little work
// asks the one with most for a log; a member that does not reach a service lets others ask for its
// logs; one that ends hands its logs over.
//
// The decisions are pure functions of what the members say of themselves (package presence). They
// are hints: members may see each other differently for a moment, and the log's claim alone decides
// who owns it.
package balance
