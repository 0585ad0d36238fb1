package sandbox_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// TestExportPrefixThatEndsInASlash: the service puts a slash behind the prefix as it is, "acme" and
// "acme/" alike. The layout export-prefix/AWSDynamoDB/ExportId is from
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport.Output.html; that the
// prefix is not shortened was reported from AWS.
func TestExportPrefixThatEndsInASlash(t *testing.T) {
	r := newExportRig(t, sandbox.Options{})
	r.must(r.put("Orders", "a", 1))
	for prefix, want := range map[string]string{
		"": "AWSDynamoDB/", "acme": "acme/AWSDynamoDB/", "acme/": "acme//AWSDynamoDB/",
	} {
		in := r.request()
		in.S3Prefix = aws.String(prefix)
		done := r.export(in)
		if !strings.HasPrefix(*done.ExportManifest, want) {
			t.Errorf("prefix %q: manifest %s", prefix, *done.ExportManifest)
		}
		if lines := r.lines(done); len(lines) != 1 {
			t.Errorf("prefix %q: %q", prefix, lines)
		}
	}
}
