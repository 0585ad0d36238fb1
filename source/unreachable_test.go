package source

import (
	"strings"
	"testing"

	"go.uber.org/zap"
)

// TestUnreachableEndpointIsNamedAlone: without the SDK's attempts, status 0 and empty request ID.
func TestUnreachableEndpointIsNamedAlone(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	o := Options{Region: "eu-west-1", Endpoint: "http://127.0.0.1:1", Attempts: 1}
	src, err := Open(t.Context(), o, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	_, err = src.Table(t.Context(), "Orders")
	if err == nil || !strings.HasPrefix(err.Error(), `describe table Orders: Post "http://127.0.0.1:1/": dial tcp`) ||
		strings.Contains(err.Error(), "RequestID") {
		t.Errorf("error %v", err)
	}
}
