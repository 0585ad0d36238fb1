package preflight

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/config"
)

// TestEndpointsShowNoUser checks with a user and a password in every endpoint, none of which
// answers. Neither is in the report, in any form, nor in the logs.
func TestEndpointsShowNoUser(t *testing.T) {
	const user, password = "m3user", "s3cret"
	with := func(scheme string) string { return scheme + user + ":" + password + "@127.0.0.1:1" }
	for name, set := range map[string]func(*config.Config){
		"configured": func(c *config.Config) {
			c.Source.Endpoint, c.Source.StreamsEndpoint = with("http://"), with("http://")
		},
		"from the environment": func(c *config.Config) {
			c.Source.Endpoint = ""
			for _, of := range []string{"", "_DYNAMODB", "_DYNAMODB_STREAMS", "_STS", "_S3"} {
				t.Setenv("AWS_ENDPOINT_URL"+of, with("http://"))
			}
		},
	} {
		s := newStage(t)
		set(&s.cfg)
		c := &s.cfg
		c.Bigtable.Endpoint = with("")
		c.Queue = config.Queue{URL: with("nats://") + "," + with("nats://")}
		c.Tracing.Endpoint = with("http://")
		c.Archive.URL = "s3://bucket/prefix?region=eu-west-1&endpoint=" + with("http://")
		t.Setenv("AWS_ENDPOINT_URL_STS", with("http://"))
		var logs, shown bytes.Buffer
		r := Run(t.Context(), c, nil, Options{Logger: func(zapcore.Level) *zap.Logger {
			return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&logs),
				zapcore.DebugLevel))
		}})
		if err := json.NewEncoder(&shown).Encode(r); err != nil {
			t.Fatal(err)
		}
		for _, code := range []string{`"bigtable"`, `"queue"`, `"archive"`} {
			if !strings.Contains(shown.String(), code) {
				t.Errorf("%s: nothing is found about %s:\n%s", name, code, shown.String())
			}
		}
		for where, text := range map[string]string{"report": shown.String(), "logs": logs.String()} {
			for _, secret := range []string{user, password} {
				if at := strings.Index(text, secret); at >= 0 {
					t.Errorf("%s: %s shows %q: …%s…", name, where, secret, text[max(0, at-200):min(len(text), at+80)])
				}
			}
		}
	}
}

// TestFaultsShowNoUser: what the configuration refuses is named without its user.
func TestFaultsShowNoUser(t *testing.T) {
	text := `
pipeline: shop
source: {region: eu-west-1, endpoint: "ftp://m3user:s3cret@host:1", streams_endpoint: "http://m3user:s3/cret@host"}
bigtable: {project: p, instance: i, endpoint: "m3user:s3cret@host:8086"}
queue: {url: "nats://m3user:s3/cret@host:1"}
admin: {listen: "m3user:s3cret@host"}
tracing: {endpoint: "grpc://m3user:s3cret@host"}
archive: {url: "s4://m3user:s3cret@bucket"}
tables: [{source: Orders, target: orders}]
`
	_, found := config.Parse([]byte(text), "tailrace.yaml")
	if len(found) < 6 {
		t.Errorf("%d faults: %v", len(found), found)
	}
	for _, p := range found {
		if all := p.What + p.Hint; strings.Contains(all, "m3user") || strings.Contains(all, "s3cret") ||
			strings.Contains(all, "s3/cret") {
			t.Errorf("%s: %s", p.Path, all)
		}
	}
}
