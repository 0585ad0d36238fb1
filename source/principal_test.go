package source

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestPrincipalIsThatOfTheTokenService(t *testing.T) {
	const who = "arn:aws:sts::123456789012:assumed-role/reader/tailrace"
	for name, c := range map[string]struct {
		reply string
		code  int
		want  string
	}{
		"token service": {`<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">` +
			`<GetCallerIdentityResult><Arn>` + who + `</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>`, 200, who},
		"a server that knows DynamoDB only": {`{"__type":"com.amazon.coral.service#UnknownOperationException"}`, 400, ""},
		"a server that answers anything":    {`ok`, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
				rw.WriteHeader(c.code)
				_, _ = io.WriteString(rw, c.reply)
			}))
			defer server.Close()
			t.Setenv("AWS_ENDPOINT_URL", server.URL)
			got, err := open(t, server.URL).Principal(t.Context())
			if got != c.want || (c.want == "") != errors.Is(err, ErrNoIdentities) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// TestCallerIsUnknownWithoutATokenService: with tables in a sandbox no call may leave for AWS.
func TestCallerIsUnknownWithoutATokenService(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL", "")
	if _, err := open(t, "http://127.0.0.1:1").Principal(t.Context()); !errors.Is(err, ErrNoIdentities) {
		t.Error(err)
	}
}
