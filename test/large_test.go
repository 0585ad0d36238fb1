package test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestLargestItemIsReplacedThroughTheSandboxsNATS replaces a binary of nearly 400 KiB: the record
// holds the old and the new one, in base64.
func TestLargestItemIsReplacedThroughTheSandboxsNATS(t *testing.T) {
	w := newWorld(t, 438)
	w.queue = fmt.Sprintf("{url: %q, replicas: 1}", w.NATS.URL())
	w.prepare("Orders")
	blob := make([]byte, 409_000)
	for version := range 2 {
		rnd := rand.NewChaCha8([32]byte{byte(version)})
		_, _ = rnd.Read(blob) // never fails
		w.Put("Orders", "a", "b", fmt.Sprintf(`"blob":{"B":%q}`, base64.StdEncoding.EncodeToString(blob)))
	}
	d := w.run()
	d.settle("Orders")
	d.checkClean()
	d.stop()
}
