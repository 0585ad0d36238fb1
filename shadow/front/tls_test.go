package front

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestFrontAddsTLS: requests in plain HTTP reach a service that takes TLS alone, with the host and
// the signature of the application, and several on one connection.
func TestFrontAddsTLS(t *testing.T) {
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.Host, " ", r.Header.Get("Authorization"), " ", r.RemoteAddr, " ", string(body))
	}))
	defer service.Close()
	trusted := service.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	f := start(t, service.URL, Options{TLS: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}})
	front, err := url.Parse("http://" + f.Addr())
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(front)}}
	defer client.CloseIdleConnections()
	var first string
	for i := range 3 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+serviceName+"/",
			strings.NewReader(strings.Repeat("x", i<<20)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "signed")
		reply, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reply.Body)
		_ = reply.Body.Close()
		words := strings.Split(string(text), " ")
		if err != nil || len(words) != 4 || words[0] != serviceName || words[1] != "signed" || len(words[3]) != i<<20 {
			t.Fatalf("request %d: %v: %.200s", i, err, text)
		}
		if first == "" {
			first = words[2]
		}
		if words[2] != first {
			t.Errorf("request %d came on another connection", i)
		}
	}
}
