// Package apiserver is a Kubernetes API server in memory, behind an http.RoundTripper: for a
// program that takes a *rest.Config, in a bubble of testing/synctest or outside. Time is
// time.Now(). The server has no goroutines. Random sequences of requests compare what it answers
// with what a real API server does.
//
// # Simulated
//
//   - Discovery, also aggregated, /version and /healthz. Kinds: those of client-go's scheme that an
//     API server has, each in its best version, and those of CustomResourceDefinitions.
//   - get, list (selectors, resourceVersion and its match), create (also with generateName), update,
//     delete, deletecollection, and JSON, merge, strategic merge and apply patches. dryRun. Status;
//     finalize of Namespaces. Bodies in JSON and Protocol Buffers, answers in JSON.
//   - PartialObjectMetadata.
//   - UIDs, generations, conflicts, preconditions, finalizers, propagation policies, Namespaces
//     that are being deleted; no write where nothing changes.
//   - Watches: from a resourceVersion, with what there is, and as streams (sendInitialEvents);
//     objects that begin or cease to match a selector; timeouts. One counter is the resourceVersion of
//     all resources.
//   - Custom resources, with the code of apiextensions-apiserver: pruning, defaults, validation
//     by schema, CEL and the limits of scale, ratcheting, and list types.
//   - Kubernetes' own kinds as a real API server stores them, if the package
//     explore/board/kinds is imported. Its documentation lists the differences.
//   - Without explore/board/kinds, unknown fields of built-in kinds are kept. An apply to them fails.
//
// # Not simulated
//
//   - Controllers, the garbage collector, a kubelet: nothing has an effect but requests. Pods, and
//     volumes and their claims, go at once when they are deleted, and nobody removes an orphan or
//     foregroundDeletion finalizer. A Job is deleted in the background by default; a real one orphans
//     its Pods.
//   - Authentication, authorization and reviews of access, quotas, webhooks and other admission,
//     but for Namespaces.
//   - Without explore/board/kinds: validation of built-in kinds, except that of their metadata and the
//     types of their fields. Of the defaults that depend on other fields, only those of defaults.go;
//     the others are generated. A Service gets no IP address.
//   - Managed fields before the first apply to an object. Then the manager of all fields that there
//     were is before-first-apply. An update that sends an object of before does not reset them.
//   - Other versions of built-in kinds, and more than one served version of a custom resource;
//     CustomResourceDefinitions as objects. The Events of one of their two groups are not in the
//     other one.
//   - Subresources such as scale, logs, binding, eviction and token. Answers in Protocol
//     Buffers, CBOR, Tables, OpenAPI, warnings, compression. Unknown fields are not refused
//     (fieldValidation). The option orphanDependents, in whose place is propagationPolicy. The option
//     limit: a list has all objects.
//   - Expiry of Events and of old versions: status 410 comes only from an Interceptor. So no bookmark
//     is needed but the one that ends the objects of a stream. A list or a watch that wants a
//     resourceVersion of the future gets status 504 at once.
//   - Items of lists also say their kind; a real API server leaves that out of built-in ones.
//     Errors have the codes, reasons and causes of a real API server, but not always the message.
//     A strategic merge patch that is wrong gets status 500.
package apiserver
