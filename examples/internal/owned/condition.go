package owned

import (
	"fmt"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const typeReady = "Ready"

// Ends of the reasons of conditions. They begin with the name of the kind.
const (
	reasonExists      = "Exists"
	reasonTerminating = "Terminating"
	reasonNameTaken   = "NameTaken"
	reasonRejected    = "Rejected"
	reasonContested   = "Contested"
	reasonNotKept     = "NotKept" // of an object that is ready, or that has lost its label
)

// maxMessage is the maximum size of an Event's note, in bytes. A condition's message may be longer.
const maxMessage = 1024

// nameTaken returns the condition of an owner whose object should have the name of object, which it
// does not own.
func (o *Objects[O, T]) nameTaken(object T) *metav1.Condition {
	holder := "no controller"
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		holder = fmt.Sprintf("%s %q", controller.Kind, controller.Name)
	}
	return NotReady(o.kind.Name+reasonNameTaken, fmt.Sprintf("%s %q exists and belongs to %s, not to "+
		"this %s: delete it or choose another name", o.kind.Name, object.GetName(), holder,
		o.owners.GroupVersionKind.Kind))
}

// NotReady returns a Ready condition that is False. The message may come from anybody, for example
// from an admission webhook. What cannot be printed is replaced, because kubectl could not print
// the object. A message that is too long is cut: the API server would refuse the Event.
func NotReady(reason, message string) *metav1.Condition {
	message = strings.Map(printable, message)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-len("...")], "") + "..."
	}
	return &metav1.Condition{
		Type: typeReady, Status: metav1.ConditionFalse, Reason: reason, Message: message,
	}
}

// Failed reports whether condition is about a failure: a name that is taken, for example, or an
// object that the API server refuses. Somebody has to do something about it, so it deserves a Warning.
func Failed(condition metav1.Condition) bool {
	return condition.Status == metav1.ConditionFalse && isNotKept(&condition) ||
		strings.HasSuffix(condition.Reason, reasonNameTaken) ||
		strings.HasSuffix(condition.Reason, reasonRejected) ||
		strings.HasSuffix(condition.Reason, reasonContested)
}

// isNotKept reports whether an object is there, but not as it was sent.
func isNotKept(condition *metav1.Condition) bool {
	return strings.HasSuffix(condition.Reason, reasonNotKept)
}

// printable returns r, or a replacement if r is neither printable nor white space. With some control
// characters in a status, such as U+007F, `kubectl get -o yaml` prints only an error.
func printable(r rune) rune {
	if unicode.IsPrint(r) || unicode.IsSpace(r) {
		return r
	}
	return unicode.ReplacementChar
}
