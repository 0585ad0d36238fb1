// Package conn is the connection of package queue to NATS JetStream: dialing, requests that the leader of a stream
// answers, consumers that deliver in order, and what errors mean. It is independent of logs and entries.
//
// Files, from the top down:
//
//	consumer.go  reading a stream in order
//	keyed.go     streams with one message for each id
//	streams.go   making streams, their metadata
//	signal.go    messages that nothing stores
//	carryout.go  requests that are answered only with whether they were done
//	leader.go    questions that only a stream's leader answers
//	conn.go      the connection: dial, close, bound and report requests
//	dial.go      options of the client library, the dialer
//	bounded.go   bounds of the client library's own requests
//	leave.go     leaving a server that answers no requests
//	explain.go   which setting a refusal of JetStream is about
//	retry.go     asking again
//	metric.go    collectors that several connections share
//	errors.go    sentinels, outcomes of a publish, classes
package conn
