package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// inCluster returns the number that follows text in in-cluster.yaml, in MiB.
func (w *world) inCluster(text string) (mib int) {
	w.t.Helper()
	manifest, err := os.ReadFile("in-cluster.yaml")
	found := regexp.MustCompile(regexp.QuoteMeta(text) + `(\d+)Mi`).FindSubmatch(manifest)
	if err != nil || found == nil {
		w.t.Fatalf("in-cluster.yaml does not say %q (%v)", text, err)
	}
	mib, _ = strconv.Atoi(string(found[1]))
	return mib
}

// flood lets strangers hold 400 connections, and send the reviews that take most memory. The
// program does not need more than its container may have.
func (w *world) flood() {
	anyCertificate := &tls.Config{InsecureSkipVerify: true}
	values := func(field, value string, size int) string {
		return `{"request":{` + field + `[` + strings.Repeat(value+",", size/(len(value)+1)) + value + `]}}}}`
	}
	const groups, managedFields = `"userInfo":{"groups":`, `"object":{"metadata":{"managedFields":`
	var wg sync.WaitGroup
	for _, body := range []string{
		values(groups, `""`, 16<<20-100), values(groups, `""`, 2500<<10),
		values(managedFields, "{}", 16<<20-100), values(managedFields, "{}", 2500<<10),
	} {
		for range 8 {
			wg.Go(func() {
				client := http.Client{
					Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: anyCertificate},
				}
				response, err := client.Post("https://"+w.address, "", strings.NewReader(body))
				if err == nil { // some are not even answered
					response.Body.Close()
				}
			})
		}
	}
	for range 400 {
		wg.Go(func() {
			connection, err := tls.Dial("tcp", w.address, anyCertificate)
			if err != nil {
				return
			}
			defer connection.Close()
			fmt.Fprintf(connection, "POST / HTTP/1.1\r\nX: %s\r\n", strings.Repeat("a", 15<<10))
			_, _ = io.Copy(io.Discard, connection)
		})
	}
	wg.Wait()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.process.PID()))
	if err != nil {
		w.t.Logf("the memory of the program is not checked: %v", err)
		return
	}
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	used, _ := strconv.Atoi(string(peak[1]))
	limit := w.inCluster("limits: {memory: ")
	w.t.Logf("in the flood, the program had up to %d MiB", used>>10)
	if used>>10 >= limit {
		w.t.Errorf("in the flood, the program had %d MiB, but its container has %d", used>>10, limit)
	}
}
