package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const mit = `MIT License

Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`

const zlib = `Copyright (c) 2026 Somebody

This software is provided 'as-is', without any express or implied warranty. In no event will the authors be held liable
for any damages arising from the use of this software.

Permission is granted to anyone to use this software for any purpose, including commercial applications, and to alter it
and redistribute it freely, subject to the following restrictions:

1. The origin of this software must not be misrepresented; you must not claim that you wrote the original software. If
you use this software in a product, an acknowledgment in the product documentation would be appreciated but is not
required.
2. Altered source versions must be plainly marked as such, and must not be misrepresented as being the original
software.
3. This notice may not be removed or altered from any source distribution.
`

// TestModuleIsDescribed with the names and the texts of its licenses, or refused.
func TestModuleIsDescribed(t *testing.T) {
	for name, c := range map[string]struct {
		files     map[string]string
		want, err string
	}{
		"license and notice": {map[string]string{"LICENSE": mit, "NOTICE.txt": "by Somebody Else", "license.go": "no"},
			"==== example.com/m v1.0.0: MIT ====\n\n--- LICENSE ---\n\nMIT License", ""},
		"British":         {map[string]string{"LICENCE.md": mit}, "==== example.com/m v1.0.0: MIT ====", ""},
		"none":            {map[string]string{"README": "free"}, "", "has no license"},
		"of another kind": {map[string]string{"LICENSE": "All rights reserved."}, "", "is a known license"},
		"a notice, alone": {map[string]string{"NOTICE": "by Somebody"}, "", "has no license"},
		"of the docs":     {map[string]string{"LICENSE": mit, "LICENSE.docs": zlib}, "m v1.0.0: MIT ====", ""},
		"docs alone":      {map[string]string{"LICENSE.docs": mit}, "", "has no license"},
		"not on the list": {map[string]string{"LICENSE": zlib}, "", "the license Zlib is not one of"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var got strings.Builder
			err := describe(&got, module{Path: "example.com/m", Version: "v1.0.0", Dir: dir})
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if !strings.Contains(got.String(), c.want) {
				t.Errorf("wrote %q", got.String())
			}
			if notice := c.files["NOTICE.txt"]; !strings.Contains(got.String(), notice) {
				t.Errorf("the notice is missing in %q", got.String())
			}
		})
	}
}
