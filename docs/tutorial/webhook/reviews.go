package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

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

// maxReview limits the size of a review, in bytes. An API server accepts objects of up to 3 MiB, and
// lets a webhook convert a list at once.
const maxReview = 16 << 20

// handler decodes a review, and encodes what answer makes of it. What is no review is the fault of
// the client: 400.
func handler[R any](answer func(context.Context, *R) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := new(R)
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReview))
		if err == nil {
			err = json.Unmarshal(body, review)
		}
		if err == nil {
			err = answer(r.Context(), review)
		}
		if err != nil {
			http.Error(w, "no review that can be answered: "+err.Error(), http.StatusBadRequest)
			return
		}
		encoded, err := json.Marshal(review)
		if err != nil {
			http.Error(w, "encoding the answer: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(encoded) // if it fails, the API server is gone
	})
}
