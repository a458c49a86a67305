package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

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
