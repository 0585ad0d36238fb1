package signature_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/signature"
)

const body = `{"TableName":"Orders"}`

// signedBySDK returns a request that the AWS SDK has signed, changed before and after that.
func signedBySDK(t *testing.T, key, secret, region, service string, before func(*http.Request)) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://dynamodb.example/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.DescribeTable")
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	if before != nil {
		before(r)
	}
	sum := sha256.Sum256([]byte(body))
	err = signer.NewSigner().SignHTTP(context.Background(), aws.Credentials{AccessKeyID: key, SecretAccessKey: secret}, r,
		hex.EncodeToString(sum[:]), service, region, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func right(t *testing.T) *http.Request {
	return signedBySDK(t, signature.AccessKey, signature.SecretKey, sandbox.Region, "dynamodb", nil)
}

func TestSignaturesOfTheSDKAreRight(t *testing.T) {
	for name, before := range map[string]func(*http.Request){
		"plain": nil,
		"odd fields": func(r *http.Request) {
			r.Header.Set("X-Amz-Meta", "  a   b ")
			r.Header["X-Amz-Twice"] = []string{"b", "a"}
		},
		"a query": func(r *http.Request) { r.URL.RawQuery = "b=c%20d&a=~&b=*" },
		"a path":  func(r *http.Request) { r.URL.Path = "/a b/c" },
	} {
		r := signedBySDK(t, signature.AccessKey, signature.SecretKey, sandbox.Region, "dynamodb", before)
		if bad := signature.Check(r, []byte(body), sandbox.Region); bad != nil {
			t.Errorf("%s: %v", name, bad)
		}
	}
	r := right(t)
	signature.Sign(r, []byte(body), sandbox.Region, time.Now())
	if bad := signature.Check(r, []byte(body), sandbox.Region); bad != nil {
		t.Errorf("signed here: %v", bad)
	}
}

func TestWrongSignatures(t *testing.T) {
	authorization := func(old, replacement string) func(*http.Request) {
		return func(r *http.Request) {
			was := r.Header.Get("Authorization")
			now := strings.Replace(was, old, replacement, 1)
			if now == was {
				t.Errorf("%q is not in %q", old, was)
			}
			r.Header.Set("Authorization", now)
		}
	}
	const wrong, incomplete = "InvalidSignatureException", "IncompleteSignatureException"
	today := time.Now().UTC().Format("20060102")
	for name, c := range map[string]struct {
		after      func(*http.Request)
		body, code string
		text       string
	}{
		"another body":      {nil, "{}", wrong, "does not match the signature you provided"},
		"another host":      {func(r *http.Request) { r.Host = "x" }, body, wrong, "does not match"},
		"another target":    {header("X-Amz-Target", "x"), body, wrong, "does not match"},
		"another time":      {header("X-Amz-Date", today+"T000000Z"), body, wrong, "does not match"},
		"another day":       {header("X-Amz-Date", "20200101T000000Z"), body, wrong, "'20200101'"},
		"another scope day": {authorization("/"+today+"/", "/20200101/"), body, wrong, "'20200101'"},
		"another signature": {authorization("Signature=", "Signature=0"), body, wrong, "does not match"},
		"another region":    {authorization("us-east-1", "eu-west-1"), body, wrong, "valid region, not 'eu-west-1'"},
		"another service":   {authorization("/dynamodb/", "/s3/"), body, wrong, "correct service: 'dynamodb'"},
		"another end":       {authorization("/aws4_request", "/x"), body, wrong, "terminator"},
		"host not signed":   {authorization(";host", ""), body, wrong, "'Host'"},
		"another key": {authorization("="+signature.AccessKey+"/", "=AKIA/"), body, "UnrecognizedClientException",
			"The security token included in the request is invalid."},
		"a token": {header("X-Amz-Security-Token", "x"), body, "UnrecognizedClientException", "security token"},
		"short scope": {authorization("/aws4_request", ""), body, incomplete,
			"exactly 5 slash-delimited elements"},
		"no signature":      {authorization("Signature=", "X="), body, incomplete, "'Signature' parameter"},
		"no credential":     {authorization("Credential=", "X="), body, incomplete, "'Credential' parameter"},
		"no signed headers": {authorization("SignedHeaders=", "X="), body, incomplete, "'SignedHeaders' parameter"},
		"no date":           {header("X-Amz-Date", ""), body, incomplete, "'X-Amz-Date'"},
		"no authorization": {header("Authorization", ""), body, "MissingAuthenticationTokenException",
			"Request is missing Authentication Token"},
		"another form": {header("Authorization", "Basic x"), body, "MissingAuthenticationTokenException", "missing"},
	} {
		r := right(t)
		if c.after != nil {
			c.after(r)
		}
		bad := signature.Check(r, []byte(c.body), sandbox.Region)
		if bad == nil || bad.Code != c.code || !strings.Contains(bad.Message, c.text) {
			t.Errorf("%s: got %v, want %s with %q", name, bad, c.code, c.text)
		}
	}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		if value == "" {
			r.Header.Del(name)
			return
		}
		r.Header.Set(name, value)
	}
}

// TestSandboxChecksSignatures: a sandbox checks them where it is asked to, and only there.
func TestSandboxChecksSignatures(t *testing.T) {
	for _, on := range []bool{false, true} {
		s := sandbox.Test(t, sandbox.Options{NoBigtable: true, NoNATS: true, NoS3: true, CheckSignatures: on})
		_, err := s.Call(t.Context(), "ListTables", "{}")
		if err != nil {
			t.Errorf("check %v: a right call: %v", on, err)
		}
		_, err = s.Call(t.Context(), "ListStreams", "{}")
		if err != nil {
			t.Errorf("check %v: a right call of the streams: %v", on, err)
		}
		reply, err := http.Get(s.Endpoint())
		if err != nil || reply.StatusCode != http.StatusOK {
			t.Errorf("check %v: a health check: %v", on, err)
		}
		got := post(t, s, func(r *http.Request) {
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=sandbox/x, "+
				"SignedHeaders=host, Signature=0")
		})
		want := map[bool]error{true: errors.New("400 com.amazon.coral.service#IncompleteSignatureException")}[on]
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("check %v: a wrong signature: got %v, want %v", on, got, want)
		}
	}
}

// post makes a call with ListTables, changed after it was signed.
func post(t *testing.T, s *sandbox.Sandbox, after func(*http.Request)) error {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.Endpoint(), strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	signature.Sign(r, []byte("{}"), sandbox.Region, time.Now())
	after(r)
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode == http.StatusOK {
		return nil
	}
	var parts struct {
		Type string `json:"__type"`
	}
	if err := json.NewDecoder(reply.Body).Decode(&parts); err != nil {
		t.Fatal(err)
	}
	return fmt.Errorf("%d %s", reply.StatusCode, parts.Type)
}
