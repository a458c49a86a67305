package outside

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	// timeout limits one request. A registry that hangs then holds a worker of the controller for this
	// long, and not until the sync ends.
	timeout = 2 * time.Second
	// maxRequests is how many requests may be under way at a time. A registry that hangs then holds
	// so many workers, and the others go on.
	maxRequests = 4
)

// ErrBusy is returned if maxRequests requests are under way. The registry was not asked.
var ErrBusy = errors.New("too many requests to the registry are under way")

// Client is a client of a registry. Several goroutines may use it at the same time.
type Client struct {
	base     *url.URL
	http     http.Client
	underWay chan struct{} // one element for each request
}

// NewClient returns a Client of the registry at base, such as "http://127.0.0.1:8090". It makes no
// request. A nil transport is that of the standard library.
func NewClient(base string, transport http.RoundTripper) (*Client, error) {
	parsed, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	if parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return nil, fmt.Errorf("%q is not the URL of an HTTP server", parsed.Redacted())
	}
	return &Client{
		base: parsed,
		http: http.Client{
			Transport: transport, Timeout: timeout,
			// A PUT or DELETE that is redirected would become a GET.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		underWay: make(chan struct{}, maxRequests),
	}, nil
}

// Put makes the registry keep entry under id. It is no error if the registry has it already.
// ErrBusy says that the caller should try again.
func (c *Client) Put(ctx context.Context, id string, entry Entry) error {
	body, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPut, id, body)
}

// Delete makes the registry forget what it keeps under id. A registry that answers 404 if
// that is nothing needs code here, which tells its own 404 from that of a proxy.
// ErrBusy says that the caller should try again.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, id, nil)
}

// do sends a request, and returns an error unless it has succeeded.
func (c *Client) do(ctx context.Context, method, id string, body []byte) error {
	select {
	case c.underWay <- struct{}{}:
		defer func() { <-c.underWay }()
	default:
		return ErrBusy
	}
	target := c.base.JoinPath("entries", id).String()
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	// A body that is not read to its end would close the connection. But it may have no end.
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("%s %s: %s: %s", method, request.URL.Redacted(), response.Status,
			bytes.TrimSpace(answer))
	}
	return err
}
