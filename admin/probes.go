package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// reasonsOf returns the reason in an error, or none for nil.
func reasonsOf(err error) []string {
	if err == nil {
		return nil
	}
	return []string{err.Error()}
}

// writeProbe replies 200 without reasons and 503 with them, as text or, if the client accepts it,
// as JSON.
func writeProbe(w http.ResponseWriter, r *http.Request, reasons []string) {
	code := http.StatusOK
	if len(reasons) > 0 {
		code = http.StatusServiceUnavailable
	}
	w.Header().Set("Cache-Control", "no-store")
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		writeJSON(w, code, map[string]any{"schema": 1, "ok": len(reasons) == 0, "reasons": append([]string{}, reasons...)})
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	if len(reasons) == 0 {
		reasons = []string{"ok"}
	}
	fmt.Fprintln(w, strings.Join(reasons, "\n"))
}

// writeJSON replies with a value.
func writeJSON(w http.ResponseWriter, code int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, "encode status: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, "%s\n", body)
}
