package wire

import (
	"crypto/rand"
	"encoding/hex"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Registry returns a registry that has the process's own metrics.
func Registry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// OwnerName returns a name that is new at every start: two processes are never the same owner.
func OwnerName() string {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	host, err := os.Hostname()
	if err != nil {
		host = "replicator"
	}
	return host + "-" + hex.EncodeToString(id[:])
}
