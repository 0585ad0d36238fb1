package source

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
)

// TestMissingCredentialsNameTheirProvider: each provider of the SDK's chain fails in its own way,
// and the remedy is another one each time.
func TestMissingCredentialsNameTheirProvider(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("a token"), 0o600); err != nil {
		t.Fatal(err)
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	answer := func(status int, code, message string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprintf(w, "<ErrorResponse><Error><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>", code, message)
		}))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	webIdentity := func(sts, file string) map[string]string {
		return map[string]string{
			"AWS_ENDPOINT_URL_STS": sts, "AWS_WEB_IDENTITY_TOKEN_FILE": file, "AWS_ROLE_ARN": "arn:aws:iam::1:role/r",
		}
	}
	for name, c := range map[string]struct {
		env        map[string]string
		role       string
		class      failure.Class
		hint, says string
	}{
		"nothing at all": {nil, "", failure.Denied, "no AWS credentials were found", "no credentials: "},
		"trust policy": {
			webIdentity(answer(403, "AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity"), token), "",
			failure.Denied, "trust policy of AWS_ROLE_ARN",
			"no credentials: STS AssumeRoleWithWebIdentity: AccessDenied: Not authorized",
		},
		"token that has expired": {
			webIdentity(answer(400, "InvalidIdentityToken", "token expired"), token), "", failure.Denied,
			"does not take the token", "InvalidIdentityToken",
		},
		"no token file": {
			webIdentity(closed.URL, filepath.Join(dir, "nowhere")), "", failure.Denied, "token file", "no such file",
		},
		"STS does not answer": {webIdentity(closed.URL, token), "", failure.Transient, "STS does not answer", "refused"},
		"STS is in trouble": {
			webIdentity(answer(500, "InternalFailure", "trouble"), token), "", failure.Transient, "STS", "InternalFailure",
		},
		"STS cannot ask the provider": {
			webIdentity(answer(400, "IDPCommunicationError", "trouble"), token), "", failure.Transient, "OIDC provider",
			"IDPCommunicationError",
		},
		"no agent": {
			map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": closed.URL}, "", failure.Denied,
			"AWS_CONTAINER_CREDENTIALS", "no credentials",
		},
		"role that may not be assumed": {
			map[string]string{
				"AWS_ENDPOINT_URL_STS": answer(403, "AccessDenied", "not allowed"), "AWS_ACCESS_KEY_ID": "a",
				"AWS_SECRET_ACCESS_KEY": "b",
			}, "arn:aws:iam::1:role/r", failure.Denied, "source.assume_role may not be assumed", "STS AssumeRole: AccessDenied",
		},
		"caller's session that has expired": {
			map[string]string{
				"AWS_ENDPOINT_URL_STS": answer(403, "ExpiredToken", "expired"), "AWS_ACCESS_KEY_ID": "a",
				"AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "c",
			}, "arn:aws:iam::1:role/r", failure.Transient, "have expired", "ExpiredToken",
		},
		"clock": {
			map[string]string{
				"AWS_ENDPOINT_URL_STS": answer(403, "SignatureDoesNotMatch", "not yet valid"), "AWS_ACCESS_KEY_ID": "a",
				"AWS_SECRET_ACCESS_KEY": "b",
			}, "arn:aws:iam::1:role/r", failure.Denied, "clock", "SignatureDoesNotMatch",
		},
		"identity center": {
			map[string]string{"AWS_PROFILE": "sso", "AWS_CONFIG_FILE": writeProfile(t, dir)}, "", failure.Denied,
			"aws sso login", "no credentials",
		},
		"a process": {
			map[string]string{"AWS_PROFILE": "process", "AWS_CONFIG_FILE": writeProfile(t, dir)}, "", failure.Denied,
			"credential_process", "no credentials",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range []string{
				"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
				"AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
			} {
				t.Setenv(name, "")
			}
			t.Setenv("HOME", dir)
			t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			s, err := Open(t.Context(), Options{
				Region: "eu-west-1", Endpoint: closed.URL, AssumeRole: c.role, Attempts: 1,
			}, zap.NewNop(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, err = s.Table(t.Context(), "Orders")
			if Classify(err) != c.class || !strings.Contains(Hint(err), c.hint) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %q: %v", Classify(err), Hint(err), err)
			}
			if !Refused(err) {
				t.Error("there are no credentials, and nothing refuses them")
			}
			if len(err.Error()) > 300 {
				t.Errorf("the error has %d characters", len(err.Error()))
			}
		})
	}
}

// writeProfile writes a configuration with profiles whose providers fail.
func writeProfile(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(`[profile sso]
sso_start_url = https://example.com/start
sso_region = eu-west-1
sso_account_id = 000000000000
sso_role_name = reader
[profile process]
credential_process = /nonexistent
`), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
