package source

import (
	"testing"

	"go.uber.org/zap"
)

// TestWhereDynamoDBIsReached: AWS's own name in each partition, and an endpoint of the environment.
func TestWhereDynamoDBIsReached(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	t.Setenv("AWS_ENDPOINT_URL", "")
	reached := func(o Options) [2]string {
		s, err := Open(t.Context(), o, zap.NewNop(), nil)
		if err != nil {
			t.Fatal(err)
		}
		name, endpoint := s.Reached(t.Context())
		return [2]string{name, endpoint}
	}
	for region, want := range map[string]string{
		"eu-west-1": "dynamodb.eu-west-1.amazonaws.com", "cn-north-1": "dynamodb.cn-north-1.amazonaws.com.cn",
		"local": "dynamodb.local.amazonaws.com",
	} {
		if got := reached(Options{Region: region}); got != [2]string{want, ""} {
			t.Errorf("%s: %v", region, got)
		}
	}
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:8000")
	want := [2]string{"dynamodb.eu-west-1.amazonaws.com", "http://127.0.0.1:8000"}
	if got := reached(Options{Region: "eu-west-1"}); got != want {
		t.Errorf("of the environment: %v", got)
	}
	if got := reached(Options{Region: "eu-west-1", Endpoint: "http://x:1"}); got[1] != "http://x:1" {
		t.Errorf("configured: %v", got)
	}
}
