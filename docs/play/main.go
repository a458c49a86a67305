// Command play writes a page in which this repository's controller runs, with the lens and an API
// server in memory: files for any web server.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	// buildFolder has what is compiled, from the root of the repository.
	buildFolder = ".local/play-build"
	// maxSize is how large the program may be, compressed, in bytes: a visitor waits for it.
	maxSize = 15_000_000
)

func main() {
	out := flag.String("out", ".local/play", "`Folder` for the page.")
	address := flag.String("serve", "", "`Address` at which to serve the page, such as "+
		"127.0.0.1:8080; port 0 is a free one (default: it is only written)")
	flag.Parse()
	*out = filepath.Clean(*out)
	err := os.Chdir("..") // from docs to the root of the repository
	if err == nil {
		err = check(*out)
	}
	var listener net.Listener
	if err == nil && *address != "" {
		listener, err = net.Listen("tcp", *address) // before minutes of work
	}
	if err == nil {
		err = write(*out)
	}
	if err == nil && listener != nil {
		fmt.Printf("The page is at http://%s/\n", listener.Addr())
		err = http.Serve(listener, http.FileServer(http.Dir(*out))) //nolint:gosec // for one user
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "play: %v\n", err)
		os.Exit(1)
	}
}

// write writes the page.
func write(out string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	o := &overlay{root: root, folder: filepath.Join(root, buildFolder),
		Replace: map[string]string{}}
	if err := o.fill(); err != nil {
		return err
	}
	list, _ := json.Marshal(o) // never fails
	overlayFile, wasm := filepath.Join(o.folder, "overlay.json"), filepath.Join(o.folder, "play.wasm")
	if err := os.WriteFile(overlayFile, list, 0o644); err != nil {
		return err
	}
	build := exec.Command("../hack/compile", "--for", "js/wasm", "the page", wasm, "-overlay", overlayFile, "-trimpath",
		"-ldflags=-s -w", "-gcflags=all=-l", "--", module+"/lens")
	build.Dir = "docs" // its go.mod knows all programs
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	return writePage(out, wasm)
}

// writePage writes what a web server has to serve.
func writePage(out, wasm string) error {
	program, err := os.ReadFile(wasm)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // that level exists
	_, _ = w.Write(program)                                    // a Buffer takes all
	_ = w.Close()
	fmt.Printf("%.1f MB, %.1f MB compressed\n", float64(len(program))/1e6, float64(packed.Len())/1e6)
	if packed.Len() > maxSize {
		return fmt.Errorf("that is more than %d bytes: find out what has made it larger", maxSize)
	}
	goroot, err := exec.Command("hack/env", "go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	from := map[string]fs.FS{
		"wasm_exec.js": os.DirFS(filepath.Join(strings.TrimSpace(string(goroot)), "lib/wasm")),
		"worker.js":    os.DirFS("docs/play"), "page.js": os.DirFS("docs/play"),
		"index.html": os.DirFS("lens/web"),
	}
	web, err := os.ReadDir("lens/web")
	if err != nil {
		return err
	}
	for _, file := range web {
		from["web/"+file.Name()] = os.DirFS("lens")
	}
	if err := writeFile(filepath.Join(out, "play.bin"), packed.Bytes()); err != nil { // first: see check
		return err
	}
	files := map[string][]byte{}
	for name, folder := range from {
		if files[name], err = fs.ReadFile(folder, name); err != nil {
			return err
		}
	}
	const first = `<script src="web/lens.js">`
	files["index.html"] = bytes.Replace(files["index.html"], []byte(first),
		[]byte("<script src=\"page.js\"></script>\n"+first), 1)
	for name, text := range files {
		if err := writeFile(filepath.Join(out, name), text); err != nil {
			return err
		}
	}
	return nil
}

// check refuses a folder that has something else than a page: files there could be overwritten.
func check(out string) error {
	entries, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if _, missing := os.Stat(filepath.Join(out, "play.bin")); err != nil || missing != nil {
		return fmt.Errorf("%s is there already, and is no page: choose another folder with -out", out)
	}
	return nil
}

// writeFile writes a file, and makes its folder.
func writeFile(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
