// Package signature checks the signatures of requests to DynamoDB (Signature Version 4) against the
// credentials that `replicator sandbox env` prints, on the standard library alone. Body, host and
// every signed header count, as on the service; the time does not, because the sandbox's clock can
// be moved.
package signature

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// The only credentials that are right.
const (
	AccessKey = "sandbox"
	SecretKey = "sandbox"
)

const (
	algorithm  = "AWS4-HMAC-SHA256"
	service    = "dynamodb" // of the streams too
	terminator = "aws4_request"
	timeFormat = "20060102T150405Z"
	dateLength = len("20060102")
)

// maxBody is more than the server accepts of a body.
const maxBody = 17 << 20

// Require returns next behind a check of signatures for a region. refuse answers a request with a
// wrong signature. Requests that call no operation pass, as health checks do.
func Require(region string, refuse func(http.ResponseWriter, *wire.Error), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("X-Amz-Target") != "" {
			body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
			if err != nil {
				panic(http.ErrAbortHandler) // the client has ended the connection within its request
			}
			if bad := Check(r, body, region); bad != nil {
				refuse(w, bad)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		next.ServeHTTP(w, r)
	})
}

// Check returns why the signature of a request is wrong; nil when it is right.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html and
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
func Check(r *http.Request, body []byte, region string) *wire.Error {
	auth := r.Header.Get("Authorization")
	parts, bad := parse(auth, r)
	if bad != nil {
		return bad
	}
	scope := strings.Split(parts["Credential"], "/")
	if len(scope) != 5 {
		return &wire.Error{Code: "IncompleteSignatureException", Message: "Credential must have exactly 5 " +
			"slash-delimited elements, e.g. keyid/date/region/service/term, got '" + parts["Credential"] + "'"}
	}
	signed := strings.Split(parts["SignedHeaders"], ";")
	at := r.Header.Get("X-Amz-Date")
	switch {
	case scope[0] != AccessKey || r.Header.Get("X-Amz-Security-Token") != "":
		return &wire.Error{Code: "UnrecognizedClientException",
			Message: "The security token included in the request is invalid."}
	case scope[2] != region:
		return invalid("Credential should be scoped to a valid region, not '%s'. ", scope[2])
	case scope[3] != service:
		return invalid("Credential should be scoped to correct service: '%s'. ", service)
	case scope[4] != terminator:
		return invalid("Credential should be scoped with a valid terminator: '%s', not '%s'. ", terminator, scope[4])
	case !slices.Contains(signed, "host"):
		return invalid("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
	case len(at) < dateLength || scope[1] != at[:dateLength]:
		return invalid("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "+
			"'%s' != '%s', from '%s'.", scope[1], at[:min(len(at), dateLength)], at)
	case !hmac.Equal([]byte(parts["Signature"]), []byte(compute(r, body, signed, scope))):
		return invalid("The request signature we calculated does not match the signature you provided. Check your AWS " +
			"Secret Access Key and signing method. Consult the service documentation for details.")
	}
	return nil
}

func invalid(format string, args ...any) *wire.Error {
	return &wire.Error{Code: "InvalidSignatureException", Message: fmt.Sprintf(format, args...)}
}

// parse returns the parts of the field Authorization, or what it lacks.
func parse(auth string, r *http.Request) (map[string]string, *wire.Error) {
	list, ok := strings.CutPrefix(auth, algorithm+" ")
	if !ok && !strings.HasPrefix(auth, "AWS4-") {
		return nil, &wire.Error{Code: "MissingAuthenticationTokenException",
			Message: "Request is missing Authentication Token"}
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		parts[name] = value
	}
	var missing strings.Builder
	for _, name := range []string{"Credential", "Signature", "SignedHeaders"} {
		if parts[name] == "" {
			missing.WriteString("Authorization header requires '" + name + "' parameter. ")
		}
	}
	if r.Header.Get("X-Amz-Date") == "" {
		missing.WriteString("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ")
	}
	if missing.Len() > 0 {
		return nil, &wire.Error{Code: "IncompleteSignatureException", Message: missing.String() + "Authorization=" + auth}
	}
	return parts, nil
}

// Sign signs a request with the sandbox's credentials. Its header must be complete.
func Sign(r *http.Request, body []byte, region string, now time.Time) {
	at := now.UTC().Format(timeFormat)
	r.Header.Set("X-Amz-Date", at)
	signed := []string{"content-type", "host", "x-amz-date", "x-amz-target"}
	scope := []string{AccessKey, at[:dateLength], region, service, terminator}
	r.Header.Set("Authorization", algorithm+" Credential="+strings.Join(scope, "/")+", SignedHeaders="+
		strings.Join(signed, ";")+", Signature="+compute(r, body, signed, scope))
}

// compute returns the right signature of a request. scope has five elements.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
func compute(r *http.Request, body []byte, signed, scope []string) string {
	sum := sha256.Sum256([]byte(canonical(r, body, signed)))
	text := strings.Join([]string{algorithm, r.Header.Get("X-Amz-Date"), strings.Join(scope[1:], "/"),
		hex.EncodeToString(sum[:])}, "\n")
	key := []byte("AWS4" + SecretKey)
	for _, part := range append(slices.Clone(scope[1:]), text) {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(part)) // never fails
		key = mac.Sum(nil)
	}
	return hex.EncodeToString(key)
}

// canonical returns the canonical form of a request.
func canonical(r *http.Request, body []byte, signed []string) string {
	sum := sha256.Sum256(body)
	path := "/"
	if r.URL.Path != "" {
		path = (&url.URL{Path: r.URL.EscapedPath()}).EscapedPath()
	}
	query := strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")
	var b strings.Builder
	b.WriteString(r.Method + "\n" + path + "\n" + query + "\n")
	for _, name := range signed {
		b.WriteString(name + ":" + value(r, name) + "\n")
	}
	b.WriteString("\n" + strings.Join(signed, ";") + "\n" + hex.EncodeToString(sum[:]))
	return b.String()
}

// value returns the value of a signed header in its canonical form.
func value(r *http.Request, name string) string {
	values := r.Header.Values(name)
	switch {
	case name == "host":
		values = []string{r.Host}
	case name == "content-length" && len(values) == 0 && r.ContentLength >= 0:
		values = []string{strconv.FormatInt(r.ContentLength, 10)}
	}
	plain := make([]string, len(values))
	for i, v := range values {
		plain[i] = strings.Join(strings.Fields(v), " ")
	}
	return strings.Join(plain, ",")
}
