package main

import (
	appsv1 "k8s.io/api/apps/v1"

	"example.com/sample-controller/docs/tutorial/14-versions/pkg/apis/samplecontroller/v1beta1"
)

// setOwnerVersion makes the owner reference of deployment name foo in this program's version. The
// garbage collector looks for an owner in the version that the reference names. If no API server
// serves that version any more, the Deployment would stay when foo is deleted.
func setOwnerVersion(deployment *appsv1.Deployment, foo *v1beta1.Foo) {
	for i := range deployment.OwnerReferences {
		if owner := &deployment.OwnerReferences[i]; owner.UID == foo.UID {
			owner.APIVersion = v1beta1.GroupVersion.String()
		}
	}
}
