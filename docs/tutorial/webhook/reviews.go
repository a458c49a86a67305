package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Convert returns object, in JSON, as an object of apiVersion. It must not fail for an object that
// the API server may have stored: nobody could read or delete that object any more.
type Convert func(object []byte, apiVersion string) (runtime.Object, error)

// Conversion returns a handler of ConversionReviews. If one object cannot be converted, the API
// server gets the error, and none of the objects.
func Conversion(convert Convert) http.Handler {
	return handler(func(_ context.Context, review *apiextensionsv1.ConversionReview) error {
		if review.Request == nil {
			return fmt.Errorf("a %s without a request", review.Kind)
		}
		review.Response = &apiextensionsv1.ConversionResponse{
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
		held := int64(0)
		defer func() { memory.Release(held) }()
		body, code, err := read(r, &held)
		if err != nil {
			refuse(code, err.Error())
			return
		}
		review := new(R)
		if err = json.Unmarshal(body, review); err == nil {
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
		_, _ = w.Write(encoded) // if it fails, the API server is gone
	})
}

// By default, an API server does not say who it is. So every client that reaches the address can
// send reviews, and the memory for all of them together is limited. A container of 512 MiB also
// has room for 20 MiB of connections and a cache.
const (
	// maxReview limits the size of a review, in bytes. An API server accepts objects of up to 3 MiB,
	// and lets a webhook convert a list at once.
	maxReview = 16 << 20
	maxMemory = 300 << 20
	// waitTimeout is how long a request waits for memory. Then its client gets an error.
	waitTimeout = 10 * time.Second
)

var memory = semaphore.NewWeighted(maxMemory)

// cost returns the memory that a review takes at most: read, decoded and answered. It was measured.
// Many tiny values take most, such as [{},{}]; and some characters are longer in the JSON of an
// answer.
func cost(body []byte) int64 {
	size := int64(len(body))
	needed := 11 * size
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

// read returns the body of a request when there is memory for it and for its answer. The caller
// gives back what is held then, even after an error. With an error, there is a code for the answer.
func read(r *http.Request, held *int64) (body []byte, code int, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), waitTimeout)
	defer cancel()
	hold := func(needed int64) error {
		err := memory.Acquire(ctx, needed-*held)
		if err == nil {
			*held = needed
		}
		return err
	}
	tooLarge := fmt.Errorf("it has more than %d bytes, no length, or too many values", maxReview)
	size := r.ContentLength // an API server always sends it
	if size < 0 || size > maxReview {
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	}
	if hold(size) != nil {
		return nil, http.StatusServiceUnavailable, errors.New("too many reviews at a time")
	}
	body = make([]byte, size)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("reading it: %w", err)
	}
	needed := cost(body)
	if needed > maxMemory {
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	}
	if hold(needed) != nil {
		return nil, http.StatusServiceUnavailable, errors.New("too many reviews at a time")
	}
	return body, 0, nil
}
