package daemon

import (
	"crypto/rand"
	"encoding/hex"
	"os"
)

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
