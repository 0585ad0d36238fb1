// Package principal tells whose credentials a file holds.
package principal

import (
	"encoding/json"
	"strings"
)

// Of names the identity in a credentials file. Without one the credentials are those of the machine.
func Of(file []byte) string {
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
