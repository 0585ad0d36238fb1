package plants

import (
	"sync"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// GuardOf implements verify.Target.
func (w *World) GuardOf(value, row, qualifier []byte) (bigtable.Guard, error) {
	return Sealer().Read(value, row, qualifier)
}

// Secret seals the keys in the guards of tables that list one under pii.
const Secret = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// Sealer returns the sealer of Secret.
var Sealer = sync.OnceValue(func() *guard.Sealer { return sealerOf(Secret) })

// lostSealer returns a sealer with a secret that no reader has.
var lostSealer = sync.OnceValue(func() *guard.Sealer {
	return sealerOf("YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODk=")
})

func sealerOf(secret string) *guard.Sealer {
	s, err := guard.NewSealer([]string{secret})
	if err != nil {
		panic(err)
	}
	return s
}

// guardValue returns the value of an item's guard in a row, as the sink writes it.
func (w *World) guardValue(of guarded.Item, row, qualifier string) string {
	if w.program(of).SealsKeys() {
		named := guard.Guard{Pipeline: "p", Table: sourceOf(of.Table), Key: []byte(of.Key)}
		return string(Sealer().Append(nil, named, []byte(row), []byte(qualifier)))
	}
	return string(guard.Append(nil, "p", sourceOf(of.Table), []byte(of.Key)))
}
