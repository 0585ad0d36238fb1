package bigtable

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/api/option"
	"google.golang.org/api/transport"

	"cloud.google.com/go/bigtable"

	"github.com/tailrace-cdc/replicator/sink/bigtable/principal"
)

// ErrNoIdentities means that the server is an emulator, which does not identify its callers.
var ErrNoIdentities = errors.New("the server knows no identities")

// Principal returns the identity of the caller as far as the application default credentials show it without a call:
// the service account, or the kind of credentials.
func (c *Client) Principal(ctx context.Context) (string, error) {
	if c.opt.emulator() != "" {
		return "", ErrNoIdentities
	}
	found, err := transport.Creds(ctx, option.WithScopes(bigtable.Scope))
	if err != nil {
		return "", fmt.Errorf("find credentials: %w", err)
	}
	return principal.Of(found.JSON), nil
}
