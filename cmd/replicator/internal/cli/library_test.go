package cli

import (
	"bytes"
	"encoding/json"
	"log"
	"testing"
)

// TestLibrariesLogInTheFormatOfTheLog while a command runs, and not any more afterwards.
func TestLibrariesLogInTheFormatOfTheLog(t *testing.T) {
	var out bytes.Buffer
	undo := (&App{Errs: &out, LogFormat: "json"}).LibraryLogs()
	log.Print("Failed to read manufacturer")
	undo()
	var line struct{ Logger, Msg string }
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Logger != "library" ||
		line.Msg != "Failed to read manufacturer" {
		t.Errorf("%q: %v", out.String(), err)
	}
	out.Reset()
	log.Print("after the command")
	if out.Len() > 0 {
		t.Errorf("still redirected: %q", out.String())
	}
}
