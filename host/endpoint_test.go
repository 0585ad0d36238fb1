package host

import "testing"

func TestEndpointsAreShownWithoutTheirUser(t *testing.T) {
	for endpoint, want := range map[string]string{
		"":                                  "",
		"http://127.0.0.1:8000":             "http://127.0.0.1:8000",
		"https://a.example/path?x=y":        "https://a.example/path?x=y",
		"http://me:s3cret@127.0.0.1:8000/x": "http://127.0.0.1:8000/x",
		"nats://token@host:4222":            "nats://host:4222",
		"me:s3cret@host:8086":               "host:8086",
		"http://me:s3/cr@et@host:1":         "http://host:1",
		"me:s3cret@":                        "",
		"http://host/a@b":                   "http://host/a@b",
	} {
		if got := WithoutUser(endpoint); got != want {
			t.Errorf("%q is shown as %q, want %q", endpoint, got, want)
		}
	}
}
