package webhook

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

// Every client that reaches the address can send reviews: an API server does not say who it is. So
// memory is limited, for all handlers together: 45 MiB for bodies, maxMemory for what becomes of
// them, and 20 MiB for connections. A container of 512 MiB has room for that and for a cache.
const (
	// maxReview limits the size of a review, in bytes. An API server accepts objects of up to 3 MiB.
	maxReview = 16 << 20
	// smallReview is the size of a body that is read at once: the connections limit their number.
	// Larger bodies wait until maxBodies has room. So they do not hold up the small ones.
	smallReview = 64 << 10
	maxBodies   = 2 * maxReview
	// maxMemory is for the reviews that are decoded and answered.
	maxMemory = 256 << 20
	// waitTimeout is how long a request waits for memory. Then its client gets an error.
	waitTimeout = 10 * time.Second
	// transferTimeout is for the body, and for the answer. They hold memory meanwhile.
	transferTimeout = 5 * time.Second
)

var (
	bodies = semaphore.NewWeighted(maxBodies)
	memory = semaphore.NewWeighted(maxMemory)
)

// cost returns the memory that a review takes at most, decoded and answered. It was measured. Many
// tiny values take most, such as [{},{}]; and some characters are longer in the JSON of an answer.
func cost(body []byte) int64 {
	size := int64(len(body))
	needed := 10 * size
	for _, c := range body {
		switch {
		case c == '{':
			needed += 600
		case c == ',' || c == '[':
			needed += 256
		case c == '<' || c == '>' || c == '&' || c >= 0x80:
			needed += 40
		}
	}
	return min(needed, 100*size) // so that any object that an API server can store has room
}

// refusal is an error of a client.
type refusal struct {
	code int
	text string
}

// read returns the body of a request when there is memory for it and for its answer, and a function
// that gives this memory back.
func read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), _ *refusal) {
	ctx, cancel := context.WithTimeout(r.Context(), waitTimeout)
	defer cancel()
	held := int64(0) // of bodies
	fail := func(code int, text string) ([]byte, func(), *refusal) {
		bodies.Release(held)
		return nil, nil, &refusal{code, text}
	}
	tooLarge := fmt.Sprintf("a review of more than %d bytes, or with too many values", maxReview)
	switch size := r.ContentLength; {
	case size < 0: // an API server always sends a length
		return fail(http.StatusLengthRequired, "a review without a length")
	case size > maxReview:
		return fail(http.StatusRequestEntityTooLarge, tooLarge)
	case size > smallReview:
		if bodies.Acquire(ctx, size) != nil {
			return fail(http.StatusServiceUnavailable, "too many large reviews at a time")
		}
		held = size
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(transferTimeout))
	body = make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return fail(http.StatusBadRequest, "reading the review: "+err.Error())
	}
	needed := cost(body)
	if needed > maxMemory {
		return fail(http.StatusRequestEntityTooLarge, tooLarge)
	}
	if memory.Acquire(ctx, needed) != nil {
		return fail(http.StatusServiceUnavailable, "too many reviews at a time")
	}
	return body, func() { memory.Release(needed); bodies.Release(held) }, nil
}
