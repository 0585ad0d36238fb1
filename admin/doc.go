// Package admin serves metrics, health and a status page of a running replicator over HTTP, for people, Prometheus and
// Kubernetes. It has no authentication and changes nothing, and shows no item and no key. By default it listens on
// loopback.
//
// Files, from the top down:
//
//	serve.go        the server and its paths
//	connections.go  how many connections, and for how long
//	hosts.go        by which names the server answers
//	pages.go        the status page: HTML for browsers, text for others
//	feed.go         tells open pages when they have changed
//	probes.go       probes, and JSON
package admin
