s|sample-controller/pkg/|sample-controller/docs/tutorial/14-versions/pkg/|
s/v1alpha1/v1beta1/g
s/V1alpha1/V1beta1/g
s/\.Spec\.DeploymentName/.Spec.Deployment.Name/g
s/spec\.deploymentName/spec.deployment.name/g
s|kubectl apply -f artifacts/examples/crd.yaml|kubectl apply -k docs/tutorial/14-versions/artifacts/3-stored|
