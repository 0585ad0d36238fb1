// Package front passes the requests of applications to DynamoDB and the answers back, unchanged,
// and gives a share of them to a function beside it.
//
//	f, err := front.New(ctx, front.Options{
//		Listen: "127.0.0.1:8001", Services: []front.Service{{Host: "dynamodb.eu-west-1.amazonaws.com"}},
//		Tap: take, Share: 0.01,
//	})
//	err = f.Run(ctx) // until ctx ends and the open exchanges have ended
//
// In mode Keep, an application has http://dynamodb.eu-west-1.amazonaws.com as its endpoint and
// HTTP_PROXY=http://127.0.0.1:8001; in mode Sign, it has http://127.0.0.1:8001 as its endpoint.
//
// The front copies bytes. Each connection of a client has one connection to the service. Of a
// request only its first line and the fields for a proxy change (or, with Sign, its signature), and
// of an answer nothing. It decompresses nothing and tries nothing again. Where the service ends or
// resets a connection, the client's connection ends or is reset behind the same byte.
//
// Goroutines: each connection has one that reads the client (conn.go) and one that reads the
// service (link.go), and Run has one for Tap. An exchange never waits for Tap: exchanges that do
// not fit into Options.Memory beside those that wait are dropped and counted.
//
// Files, from the top down:
//
//	front.go         listens, accepts and drains; counts
//	options.go       options, and how connections are made to a service
//	listen_linux.go  several processes on one address
//	listen_other.go  only one elsewhere
//	conn.go          the requests of one client
//	link.go          the answers of the service to one client
//	reply.go         answers of the front itself
//	route.go         which service a request is for, and its head there
//	body.go          where a body ends
//	sample.go        one exchange for Tap, and the queue of them
//	head.go          the head of a request or an answer
//	reader.go        heads and bodies in the bytes of a connection
package front
