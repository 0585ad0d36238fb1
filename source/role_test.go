package source

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
)

func TestAssumedRoleSignsTheCalls(t *testing.T) {
	sts := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Form.Get("RoleArn") != "arn:aws:iam::1:role/reader" ||
			r.Form.Get("ExternalId") != "acme-7" {
			http.Error(rw, "what role?", http.StatusBadRequest)
			return
		}
		fmt.Fprintf(rw, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>`+
			`<Credentials><AccessKeyId>ASSUMED</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>`+
			`<Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
			time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	defer sts.Close()
	t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL)
	w := newWire()
	var signed string
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		signed = r.Header.Get("Authorization")
		w.ServeHTTP(rw, r)
	}))
	defer front.Close()
	s := open(t, front.URL, func(o *Options) { o.AssumeRole, o.ExternalID = "arn:aws:iam::1:role/reader", "acme-7" })
	if _, err := s.List(t.Context(), "arn"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(signed, "Credential=ASSUMED/") {
		t.Fatal(signed)
	}
	for name, change := range map[string]func(*Options){
		"another role":   func(o *Options) { o.AssumeRole, o.ExternalID = "arn:aws:iam::1:role/other", "acme-7" },
		"no external id": func(o *Options) { o.AssumeRole = "arn:aws:iam::1:role/reader" },
	} {
		if _, err := open(t, front.URL, change).List(t.Context(), "arn"); Classify(err) != failure.Denied {
			t.Errorf("%s: %v: %v", name, Classify(err), err)
		}
	}
}
