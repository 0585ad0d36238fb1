package conn

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers c, or returns the collector that reg already has under this description, so
// that several Queues on one registry count in the same place. With a nil reg it returns c.
func Register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if reg == nil {
		return c
	}
	if err := reg.Register(c); err != nil {
		if already := (prometheus.AlreadyRegisteredError{}); errors.As(err, &already) {
			return already.ExistingCollector.(C)
		}
		panic(err) // two collectors of one name: a programming error
	}
	return c
}
