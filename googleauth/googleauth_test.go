package googleauth

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/api/option"
	"google.golang.org/api/transport"
)

const scope = "https://www.googleapis.com/auth/bigtable.data"

// TestTaskOfECSFederates: where the container's endpoint has the AWS credentials, as on ECS and
// Fargate, Google's token service gets a request that they signed, and a service account is
// impersonated with what it returns.
func TestTaskOfECSFederates(t *testing.T) {
	google := &tokenService{t: t}
	server := httptest.NewServer(google)
	defer server.Close()
	container := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "container-token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"AccessKeyId":"TASK","SecretAccessKey":"s","Token":"session",`+
			`"Expiration":"2099-01-01T00:00:00Z"}`)
	}))
	defer container.Close()
	configure(t, server.URL, "aws1")
	for name, value := range map[string]string{
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": container.URL + "/task", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "container-token",
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	} {
		t.Setenv(name, value)
	}
	opts, err := Options(t.Context(), scope)
	if err != nil || len(opts) != 1 {
		t.Fatalf("%d options, %v", len(opts), err)
	}
	found, err := transport.Creds(t.Context(), append(opts, option.WithScopes(scope))...)
	if err != nil {
		t.Fatal(err)
	}
	token, err := found.TokenSource.Token()
	if err != nil || token.AccessToken != "impersonated" {
		t.Fatalf("token %+v, %v", token, err)
	}
	if !strings.Contains(google.signed, "Credential=TASK/") || !strings.Contains(google.signed, "/eu-west-1/sts/") {
		t.Errorf("the caller identity is signed by %q", google.signed)
	}
}

// TestOtherCredentialsAreLeftToGoogle's library: only a federation with AWS is replaced.
func TestOtherCredentialsAreLeftToGoogle(t *testing.T) {
	configure(t, "https://sts.example", "")
	if opts, err := Options(t.Context(), scope); err != nil || opts != nil {
		t.Errorf("%d options for a federation with OIDC, %v", len(opts), err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "nowhere.json"))
	if opts, err := Options(t.Context(), scope); err != nil || opts != nil {
		t.Errorf("%d options without credentials, %v", len(opts), err)
	}
}

// tokenService is Google's token service, and its service for impersonation.
type tokenService struct {
	t      *testing.T
	signed string // the Authorization of the caller identity that AWS is to be asked for
}

// ServeHTTP implements http.Handler.
func (s *tokenService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, ":generateAccessToken") {
		if r.Header.Get("Authorization") != "Bearer federated" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"accessToken":"impersonated","expireTime":"2099-01-01T00:00:00Z"}`)
		return
	}
	if err := r.ParseForm(); err != nil {
		s.t.Error(err)
	}
	subject, err := url.QueryUnescape(r.Form.Get("subject_token"))
	if err != nil {
		s.t.Error(err)
	}
	var request struct {
		Headers []struct{ Key, Value string }
	}
	if err := json.Unmarshal([]byte(subject), &request); err != nil {
		s.t.Errorf("%q: %v", subject, err)
	}
	for _, h := range request.Headers {
		if strings.EqualFold(h.Key, "Authorization") {
			s.signed = h.Value
		}
	}
	_, _ = io.WriteString(w, `{"access_token":"federated","token_type":"Bearer","expires_in":3600,`+
		`"issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}`)
}

// configure makes a credentials configuration the application default.
func configure(t *testing.T, service, environment string) {
	t.Helper()
	source := `{"file": "/var/run/token"}`
	if environment != "" {
		source = fmt.Sprintf(`{"environment_id": %q, "regional_cred_verification_url": `+
			`"https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15"}`, environment)
	}
	file := filepath.Join(t.TempDir(), "federation.json")
	text := fmt.Sprintf(`{"type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/`+
		`workloadIdentityPools/p/providers/aws", "subject_token_type": "urn:ietf:params:aws:token-type:aws4_request",
		"token_url": "%[1]s/v1/token", "credential_source": %[2]s,
		"service_account_impersonation_url": "%[1]s/v1/projects/-/serviceAccounts/me@p.iam:generateAccessToken"}`,
		service, source)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
}
