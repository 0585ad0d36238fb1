package bigtable

import "testing"

func TestPrincipalIsReadFromEveryKindOfCredentials(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"", "the service account of this machine or pod (metadata server)"},
		{
			`{"type":"service_account","client_email":"tailrace@acme.iam.gserviceaccount.com","private_key":"secret"}`,
			"tailrace@acme.iam.gserviceaccount.com",
		},
		{
			`{"type":"authorized_user","refresh_token":"secret"}`,
			"a user's own login (gcloud auth application-default login)",
		},
		{
			`{"type":"external_account",` +
				`"audience":"//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/aws"}`,
			"federated identity of projects/1/locations/global/workloadIdentityPools/p/providers/aws",
		},
		{
			`{"type":"external_account","audience":"a",` +
				`"service_account_impersonation_url":"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/` +
				`t@acme.iam.gserviceaccount.com:generateAccessToken"}`,
			"t@acme.iam.gserviceaccount.com",
		},
	} {
		if got := principalOf([]byte(c.file)); got != c.want {
			t.Errorf("%s: %q, want %q", c.file, got, c.want)
		}
	}
}
