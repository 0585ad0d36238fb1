package bigtable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/api/transport"
)

// ErrNoIdentities means that the server is an emulator, which does not identify its callers.
var ErrNoIdentities = errors.New("the server knows no identities")

// Principal returns the identity of the caller as far as the application default credentials show
// it without a call: the service account, or the kind of credentials.
func (c *Client) Principal(ctx context.Context) (string, error) {
	if c.opt.dataServer().plain {
		return "", ErrNoIdentities
	}
	found, err := transport.Creds(ctx, option.WithScopes(bigtable.Scope))
	if err != nil {
		return "", fmt.Errorf("find credentials: %w", err)
	}
	return principalOf(found.JSON), nil
}

// principalOf names the identity in a credentials file. Without a file the machine's credentials
// are used.
func principalOf(file []byte) string {
	var f struct {
		Type          string `json:"type"`
		Email         string `json:"client_email"`
		Impersonation string `json:"service_account_impersonation_url"`
		Audience      string `json:"audience"`
	}
	if len(file) == 0 || json.Unmarshal(file, &f) != nil {
		return "the service account of this machine or pod (metadata server)"
	}
	_, account, impersonates := strings.Cut(f.Impersonation, "/serviceAccounts/")
	switch {
	case f.Email != "":
		return f.Email
	case impersonates:
		return strings.TrimSuffix(account, ":generateAccessToken")
	case f.Audience != "":
		return "federated identity of " + strings.TrimPrefix(f.Audience, "//iam.googleapis.com/")
	case f.Type == "authorized_user":
		return "a user's own login (gcloud auth application-default login)"
	default:
		return "credentials of type " + f.Type
	}
}
