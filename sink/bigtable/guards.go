package bigtable

import (
	"errors"

	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
)

// Guard is the decoded value of a guard: the item in the row, its table and its pipeline.
type Guard = guard.Guard

// Sealer seals the keys in the values of guards.
type Sealer = guard.Sealer

// NewSealer makes a Sealer from secrets of 32 bytes in base64: the first one seals, any of them
// opens. It returns nil without secrets.
func NewSealer(secrets []string) (*Sealer, error) { return guard.NewSealer(secrets) }

var errNoSecret = errors.New("a key attribute is listed under pii, so the guards need a secret: set pii_secrets")

// GuardOf decodes the value of a guard; row and qualifier are its location. An error means that no
// build has written the value in this place.
func (c *Client) GuardOf(value, row, qualifier []byte) (Guard, error) {
	return c.opt.Seal.Read(value, row, qualifier)
}
