/* The version of the library, and the marks every public header uses. */
#ifndef NACRE_VERSION_H
#define NACRE_VERSION_H

#define NACRE_VERSION_MAJOR 0
#define NACRE_VERSION_MINOR 1
#define NACRE_VERSION_PATCH 0
#define NACRE_VERSION       "0.1.0"

#ifdef __cplusplus
#define NACRE_BEGIN_DECLS extern "C" {
#define NACRE_END_DECLS   }
#else
#define NACRE_BEGIN_DECLS
#define NACRE_END_DECLS
#endif

#if defined(__GNUC__)
#define NACRE_API __attribute__((visibility("default")))
#else
#define NACRE_API
#endif

NACRE_BEGIN_DECLS

/* The version of the library that is linked, which may be newer than these headers. */
NACRE_API const char *nacre_version(void);

NACRE_END_DECLS

#endif
