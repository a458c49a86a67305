package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// ConversionReview is that of apiextensions.k8s.io/v1, with the same fields. The package that has
// the original needs many other modules.
type ConversionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *ConversionRequest  `json:"request,omitempty"`
	Response        *ConversionResponse `json:"response,omitempty"`
}

// ConversionRequest is the request in a ConversionReview.
type ConversionRequest struct {
	UID               types.UID              `json:"uid"`
	DesiredAPIVersion string                 `json:"desiredAPIVersion"`
	Objects           []runtime.RawExtension `json:"objects"`
}

// ConversionResponse is the response in a ConversionReview.
type ConversionResponse struct {
	UID              types.UID              `json:"uid"`
	ConvertedObjects []runtime.RawExtension `json:"convertedObjects"`
	Result           metav1.Status          `json:"result"`
}

// Convert returns object, in JSON, as an object of apiVersion. It must not fail for an object that
// the API server may have stored: nobody could read or delete that object any more.
type Convert func(object []byte, apiVersion string) (runtime.Object, error)

// Conversion returns a handler of ConversionReviews. If one object cannot be converted, the API
// server gets the error, and none of the objects.
func Conversion(convert Convert) http.Handler {
	return handler(func(_ context.Context, review *ConversionReview) error {
		if review.Request == nil {
			return fmt.Errorf("a %s without a request", review.Kind)
		}
		review.Response = &ConversionResponse{
			UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess},
		}
		for i, object := range review.Request.Objects {
			converted, err := convert(object.Raw, review.Request.DesiredAPIVersion)
			if err != nil {
				review.Response.ConvertedObjects = nil
				review.Response.Result = metav1.Status{
					Status: metav1.StatusFailure, Message: fmt.Sprintf("object %d: %s", i, err),
				}
				break
			}
			review.Response.ConvertedObjects = append(review.Response.ConvertedObjects,
				runtime.RawExtension{Object: converted})
		}
		review.Request = nil
		return nil
	})
}

// Admit decides on a request. The handler fills in the UID of the response.
type Admit func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

// Admission returns a handler of AdmissionReviews.
func Admission(admit Admit) http.Handler {
	return handler(func(ctx context.Context, review *admissionv1.AdmissionReview) error {
		if review.Request == nil {
			return fmt.Errorf("a %s without a request", review.Kind)
		}
		review.Response = admit(ctx, review.Request)
		review.Response.UID = review.Request.UID
		review.Request = nil
		return nil
	})
}

// handler decodes a review, and encodes what answer makes of it. What is no review is the fault of
// the client: 400. A connection ends with a refusal, so that it is free for others.
func handler[R any](answer func(context.Context, *R) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse := func(code int, text string) {
			w.Header().Set("Connection", "close")
			http.Error(w, "no review that can be answered: "+text, code)
		}
		body, release, refusal := read(w, r)
		if refusal != nil {
			refuse(refusal.code, refusal.text)
			return
		}
		defer release()
		review := new(R)
		err := json.Unmarshal(body, review)
		if err == nil {
			err = answer(r.Context(), review)
		}
		if err != nil {
			refuse(http.StatusBadRequest, err.Error())
			return
		}
		encoded, err := json.Marshal(review)
		if err != nil {
			refuse(http.StatusInternalServerError, err.Error())
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(transferTimeout))
		_, _ = w.Write(encoded) // if it fails, the API server is gone
	})
}

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
