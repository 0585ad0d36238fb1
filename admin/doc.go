// Package admin serves metrics, health and a status page of a running replicator over HTTP, for people, Prometheus and
// Kubernetes. It has no authentication and changes nothing, and shows no item and no key. By default it listens on
// loopback.
//
// Files, from the top down:
//
//	serve.go        the server and its paths
//	connections.go  how many connections, and for how long
//	hosts.go        by which names the server answers
//	pages.go        the status page: HTML for browsers, text for others; an open page reads itself again (page.js)
//	probes.go       probes, and JSON
//	page.go         the front page, the page of a table, and their assets: HTML that needs nothing from outside
//	table.go        facts, gaps and errors of one table
//	front.go        a row per table
//	cost.go         what tables cost in a month
//	timeline.go     what happened, and long reasons
//	lineage.go      the shards of a stream as a drawing of bounded size
//	chart.go        the last hour as lines
//	words.go        numbers and times as people say them
//	errlog.go       the last warnings and errors of each table, in memory
package admin
