// Package clients opens the clients of DynamoDB, the queue, Bigtable and the archive, as the
// configuration describes them: for a command, or for the daemon.
//
//	            configuration
//	                  │
//	   ┌──────────────┼────────────────┬──────────────────┐
//	   ▼              ▼                ▼                  ▼
//	Source         Queue            Bigtable           Archive
//	DynamoDB and   one log per      cells, state row   files, or a subject
//	its streams    table            and target row     on the queue's connection
//	   │              │                ▲
//	   │              │                │ clock: the service time from Source's replies
//	   └──────────────┼────────────────┘
//	                  │
//	      command: the embedded server of the running daemon, or its store when no daemon runs;
//	               servers that cannot be reached are reported at once
//	      daemon:  the store itself; waits a while for a command that has it open;
//	               retries without limit, and reports each outcome to pipeline.Services
//
// Files, from the top down:
//
//	clients.go  Clients: each client on its first use, all closed together
//	archive.go  where archival events go
//	queue.go    the queue of a command, of the daemon, and of a daemon that is about to start
//	explain.go  class and hint of what a service answered and no caller has explained
//	options.go  the options of each package, from the configuration
package clients
