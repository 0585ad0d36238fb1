package admin

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestBrowsersGetHTMLAndOthersText: both begin with the same sentence, and so does the title.
func TestBrowsersGetHTMLAndOthersText(t *testing.T) {
	base := serve(t, &health{}, prometheus.NewRegistry())
	_, text := get(t, base+"/", "*/*")
	first, _, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, "Healthy: 2 tables are replicated") || !strings.Contains(first, "Next: nothing to do.") {
		t.Errorf("the text begins with %q", first)
	}
	for _, path := range []string{"/", "/table/Orders"} {
		code, html := get(t, base+path, "text/html,application/xhtml+xml")
		linked := path != "/" || strings.Contains(html, `href="/table/Orders"`)
		if code != 200 || !linked || !strings.Contains(html, "<title>"+first+"</title>") {
			t.Errorf("%s: %d %.600s", path, code, html)
		}
		for _, word := range []string{
			`lang="en"`, "<h1>", "<main", "<header", "<footer", `aria-live="polite"`, `http-equiv="refresh"`,
		} {
			if !strings.Contains(html, word) {
				t.Errorf("%s has no %s", path, word)
			}
		}
		found := regexp.MustCompile(`(?:src|href)="(?:https?:)?//`).FindString(html)
		if found != "" || strings.Contains(html, "style=") {
			t.Errorf("%s loads something from outside, or needs inline styles: %q", path, found)
		}
	}
	if code, _ := get(t, base+"/table/Nobody", "text/html"); code != 404 {
		t.Errorf("a table that does not exist: %d", code)
	}
}

// TestPagesAreStrict: no script and no style but their own, in no frame, and nothing but GET.
func TestPagesAreStrict(t *testing.T) {
	base := serve(t, &health{}, prometheus.NewRegistry())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	policy := reply.Header.Get("Content-Security-Policy")
	for _, rule := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, rule) {
			t.Errorf("policy %q has no %q", policy, rule)
		}
	}
	for _, path := range []string{"/page/style.css", "/page/page.js", "/page/icon.svg"} {
		if code, body := get(t, base+path, ""); code != 200 || body == "" {
			t.Errorf("%s: %d", path, code)
		}
	}
	for _, path := range []string{"/page/", "/page/page.html", "/page/../page/page.html"} {
		if code, _ := get(t, base+path, ""); code != 404 {
			t.Errorf("%s: %d, want 404", path, code)
		}
	}
	post, err := http.Post(base+"/", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = post.Body.Close()
	if post.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", post.StatusCode)
	}
}
